package order

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/quorate/quorate/etcdmember/table"
	"github.com/quorate/quorate/internal/record"
	"github.com/quorate/quorate/internal/replica"
)

// risks says what an override of a row means and risks, of member %[1]s of %[2]s.
var risks = map[int]string{
	42: "Member %[1]s of %[2]s is removed as soon as it has been unreachable for a minute and the others " +
		"that are connected are a quorum without it, although nothing proves that its VM is gone. The risk: " +
		"until another replica has joined, the cluster survives one failure fewer; and if the VM still runs, cut " +
		"off, it serves old reads to whoever reaches it until it learns of its removal. When it comes back after " +
		"that, its directory is archived and it joins anew. If it is heard of before that, the order is done.",
	47: "You say that member %[1]s of %[2]s is the one whose data is wrong. It is removed, its directory is " +
		"archived, it joins anew with a copy from the others, and the alarms are disarmed once the voters that " +
		"are left agree. The risk: what the others hold becomes the truth, and if it is they that are wrong, the " +
		"only right copy is the archived one.",
}

// CheckRow finds the row that is to be overridden, by its name or its number. It comes before what else is wrong with
// the command: of another row nothing else matters.
func CheckRow(text string) (int, error) {
	if row, ok := table.RowOf(text); ok {
		text = strconv.Itoa(int(row))
	}
	number, err := strconv.Atoi(text)
	switch _, ok := risks[number]; {
	case err == nil && ok:
		return number, nil
	case number == 30:
		return 0, Refuse("row needed-but-broken cannot be overridden: a directory that cannot be " +
			"used has said so in the record before an order could reach it; 'quorate restore' can begin a new " +
			"history from it")
	}
	return 0, Refuse("row %q: unreachable-voter and members-differ can be overridden", text)
}

// CheckOverride checks an override of a row for one member, by its id.
func (l Log) CheckOverride(number int, member, reason string) (Draft, error) {
	var d Draft
	risk := risks[number]
	id, err := record.ParseMemberID(member)
	known := members(l.View)
	place, ok := known[id]
	if err != nil || !ok {
		return d, Refuse("member %q: the record knows no such member; it knows %s", member, memberList(known))
	}
	d.Order = record.Order{Kind: record.OrderOverride, Row: number, MemberID: id, Reason: reason}
	d.Means, d.Back, d.Then = fmt.Sprintf(risk, id, place), withdrawIt, ", before it is carried out"
	d.Confirm = fmt.Sprintf("Override %s for member %s of %s?", table.Row(number).Name(), id, place)
	if o, ok := l.inForce(func(o record.Order) bool {
		// done: it was about another time
		return o.Kind == record.OrderOverride && o.Row == number && o.MemberID == id && o.Done == nil
	}); ok {
		d.Already = fmt.Sprintf("Order %d says so already, %s; it is %s.", o.Number, given(o),
			StateText(l.states[o.Number]))
	}
	return d, nil
}

// members are the ids that may stand in etcd's list by the record: of each place, the newest confirmed incarnation of
// the newest formed epoch and the pending ones after it. An older id was removed before its successor was confirmed.
func members(v record.View) map[record.MemberID]replica.Place {
	out := map[record.MemberID]replica.Place{}
	formed := v.NewestFormed()
	if formed == nil {
		return out
	}
	for place := range v.Replicas {
		for _, i := range v.Current(place) {
			if id := table.IncarnationMember(i); id != 0 && i.Epoch == formed.Number {
				out[id] = place
			}
		}
	}
	return out
}

func memberList(known map[record.MemberID]replica.Place) string {
	if len(known) == 0 {
		return "none"
	}
	ids := slices.SortedFunc(maps.Keys(known), func(a, b record.MemberID) int {
		return replica.ComparePlaces(known[a], known[b])
	})
	var text []string
	for _, id := range ids {
		text = append(text, fmt.Sprintf("%s (%s)", id, known[id]))
	}
	return strings.Join(text, ", ")
}
