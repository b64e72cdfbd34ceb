package acts

import (
	"slices"
	"time"

	"github.com/quorate/quorate/etcdmember/leader"
	"github.com/quorate/quorate/etcdmember/table"
	"github.com/quorate/quorate/internal/record"
)

// The rules around stopped/ and restores that once were missing, taken out one by one: the walk finds each of the holes
// by itself. TestPlantedFaultsAreFound runs them, TestOrdersOfEvents tells each of them step by step.

// withoutOwnStops is the facts of a replica that does not know what its own place has said in stopped/ of the newest
// formed epoch.
func withoutOwnStops(f table.Facts) table.Facts {
	f.Agent.Ended = 0
	f.Record.Epochs = slices.Clone(f.Record.Epochs)
	for n := range f.Record.Epochs {
		e := &f.Record.Epochs[n]
		e.Stopped = slices.DeleteFunc(slices.Clone(e.Stopped),
			func(s record.Stopped) bool { return s.Place == f.Me.Place })
	}
	return f
}

// classifyH1 goes on with a join under an incarnation that has ended: after a restore was withdrawn, its member counts
// as silent for ever.
func classifyH1(f table.Facts) table.Observation {
	o := table.Classify(f)
	o.Ended = o.Ended && !o.Running
	if o.Local == table.L0 && o.Record == table.Rf && !o.EndedByOrder {
		again := table.Classify(withoutOwnStops(f))
		o.OwnIncarnation, o.Pending, o.Confirmed, o.Names.Incarnation = again.OwnIncarnation, again.Pending,
			again.Confirmed, again.Names.Incarnation
	}
	return o
}

// classifyH2 takes any word about the disk's member for its end, also that of a successor with an empty disk, which
// decideH2 lets it write.
func classifyH2(f table.Facts) table.Observation {
	o := table.Classify(f)
	h := table.HistoryOf(f)
	if o.Local == table.L1 && h.Formed != nil &&
		slices.ContainsFunc(h.Formed.Stopped, func(s record.Stopped) bool { return s.MemberID == h.MemberID() }) {
		o.EndUnproven = true
	}
	for _, i := range f.Record.Replicas[f.Me.Place] {
		said := h.Formed != nil && slices.ContainsFunc(h.Formed.Stopped,
			func(s record.Stopped) bool { return s.Place == i.Place && s.Incarnation == i.Number })
		if o.Local == table.L0 && o.Record == table.Rf && i.Epoch == record.NumberOf(h.Formed) && i.Started != nil &&
			!said {
			o.StopReport = table.StopReport{Owed: true, Incarnation: i.Number, MemberID: i.Started.MemberID}
		}
	}
	return o
}

func decideH2(now time.Time, o table.Observation) table.Plan {
	p := table.Decide(now, o)
	if p.Row == 24 && o.StopReport.Owed && o.StopReport.MemberID != 0 {
		return table.Plan{Row: 24, Act: table.ActWriteStopped, Epoch: o.Names.FormedEpoch,
			Incarnation: o.StopReport.Incarnation,
			MemberID:    o.StopReport.MemberID}
	}
	return p
}

// classifyH5 restores from no directory whose agent.json is lost.
func classifyH5(f table.Facts) table.Observation {
	o := table.Classify(f)
	if o.Local == table.L2 && o.DirectoryIsSource {
		o.SourceHere, o.DirectoryIsSource = false, false
	}
	return o
}

// factsH4 asks for nobody's disk before a snapshot is offered.
func factsH4(f *table.Facts) { f.Compute.First.Disks, f.Compute.Second.Disks = nil, nil }

// factsH6 believes that every entry of the list is older than the record.
func factsH6(f *table.Facts) {
	f.ListedBefore = map[record.MemberID]string{}
	if a, ok := table.QuorumAnswer(*f); ok {
		for _, m := range a.Members {
			f.ListedBefore[m.ID] = m.Name
		}
	}
}

// factsRace and decideRace know no verdict: a withdrawal counts as soon as it is read, and an epoch is closed as soon
// as all are silent.
func factsRace(f *table.Facts) {
	f.Record.Orders = slices.Clone(f.Record.Orders)
	for _, o := range f.Record.Orders {
		if n := slices.IndexFunc(f.Record.Orders,
			func(x record.Order) bool { return x.Number == o.Withdraws }); o.Kind == record.OrderWithdraw && n >= 0 {
			f.Record.Orders[n].Verdict = &record.Verdict{Withdrawn: true}
		}
	}
}

func decideRace(now time.Time, o table.Observation) table.Plan {
	p := table.Decide(now, o)
	if p.Act == table.ActSettle && p.Closing {
		p.Act = table.ActCloseEpoch
	}
	return p
}

// classifyS1 does not heed a later boot of its own instance.
func classifyS1(f table.Facts) table.Observation {
	f.Superseded = false
	o := table.Classify(f)
	if o.Names.LaterBoot {
		o.Superseded = false
	}
	return o
}

// factsS2 takes the lists of VMs alone for a proof of silence.
func factsS2(f *table.Facts) {
	f.Beats = nil
	f.Compute.Runs = map[string]table.Run{}
	for _, l := range []*table.Listing{&f.Compute.First, &f.Compute.Second} {
		l.Users, l.Instances = nil, slices.Clone(l.Instances)
		for i := range l.Instances {
			l.Instances[i].LastStop = l.ServerTime.Add(-table.StopSilence)
		}
	}
	for _, incarnations := range f.Record.Replicas {
		for _, i := range incarnations {
			kind := table.RunKindOf(table.StatusIn(f.Compute.Second, i.InstanceID))
			if kind != "" && kind == table.RunKindOf(table.StatusIn(f.Compute.First, i.InstanceID)) {
				f.Compute.Runs[i.InstanceID] = table.Run{Kind: kind,
					Since: f.Compute.First.Time.Add(-table.MarkSilence)}
			}
		}
	}
}

// reverted are the rules that the walks must miss.
var reverted = []plantedFault{
	{"H1: a join goes on under an incarnation that has ended", "S1", 778,
		variant{classify: classifyH1, decide: table.Decide,
			beside: leader.Decide}},
	{"H2: an empty disk speaks for the member of the disk that was there before", "S5", 0,
		variant{classify: classifyH2, decide: decideH2, beside: leader.Decide}},
	{"H4: a snapshot is offered while the disk that holds everything exists", "S2", 17294,
		variant{decide: table.Decide, beside: leader.Decide, facts: factsH4}},
	{"H5: a directory without agent.json is no source", "S5", 0, variant{classify: classifyH5, decide: table.Decide,
		beside: leader.Decide}},
	{"H6: a former VM removes its successor's voter", "S3", 991,
		variant{decide: table.Decide, beside: leader.Decide,
			facts: factsH6}},
	{"the race of withdrawing with closing", "S1", 11647, variant{decide: decideRace, beside: leader.Decide,
		facts: factsRace}},
	{"S1: an older boot of an instance goes on", "S1", 0, variant{classify: classifyS1, decide: table.Decide,
		beside: leader.Decide}},
	{"S2: silence needs no other witness than the lists of VMs", "S1", 2108,
		variant{decide: table.Decide, beside: leader.Decide, facts: factsS2}},
	{"a restore reads a surviving directory up to the commit index that was saved", "S2", 10370,
		variant{decide: table.Decide, beside: leader.Decide,
			reads: func(commit, _ int) int { return commit }}},
}
