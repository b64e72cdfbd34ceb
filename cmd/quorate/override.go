package main

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/quorate/quorate/internal/record"
	"github.com/quorate/quorate/internal/replica"
)

func newOverride() *cobra.Command {
	var f orderFlags
	var reason string
	var yes bool
	cmd := &cobra.Command{Use: "override ROW MEMBER", Short: "Let the agents do what only a person can answer for",
		Long: `Let the agents do what only a person can answer for. Two rows of the membership's table can be overridden, each for one member,
which is named by its id as "quorate status" prints it:

  42  the member is unreachable, and nothing proves that its VM is gone: it is removed all the same
  47  the members' data differ, and no majority says who is wrong: this member is, and it is replaced

It says what that risks, and asks.`,
		Example: `  quorate override 42 8e9e05c52164694d --reason "the zone is lost, ticket 4711"`,
		Args:    exactly("ROW", "MEMBER"),
		RunE: func(cmd *cobra.Command, args []string) error {
			row, err := checkRow(args[0])
			if err != nil {
				return err
			}
			if err := needed(cmd, "reason"); err != nil {
				return err
			}
			return give(cmd, &f, func(b book) (draft, error) {
				d, err := checkOverride(b, row, args[1], reason)
				d.yes = yes
				return d, err
			})
		}}
	f.add(cmd)
	addYes(cmd, &yes)
	cmd.Flags().StringVar(&reason, "reason", "", "why you are sure, for those who read the orders later")
	return cmd
}

// risks says what an override of a row means and risks, of member %[1]s of %[2]s.
var risks = map[int]string{
	42: "Member %[1]s of %[2]s is removed as soon as it has been unreachable for a minute and the others that are " +
		"connected are a quorum " +
		"without it, although nothing proves that its VM is gone. The risk: until another replica has joined, the " +
		"cluster survives one failure " +
		"fewer; and if the VM still runs, cut off, it serves old reads to whoever reaches it until it learns of its " +
		"removal. When it comes back " +
		"after that, its directory is archived and it joins anew. If it is heard of before that, the order is done.",
	47: "You say that member %[1]s of %[2]s is the one whose data is wrong. It is removed, its directory is " +
		"archived, it joins anew with a copy " +
		"from the others, and the alarms are disarmed once the voters that are left agree. The risk: what the others " +
		"hold becomes the truth, and if it is they that are wrong, the only " +
		"right copy is the archived one.",
}

// checkRow finds the row that is to be overridden. It comes before what else is wrong with the command: of another row
// nothing else matters.
func checkRow(text string) (int, error) {
	number, err := strconv.Atoi(text)
	switch _, ok := risks[number]; {
	case err == nil && ok:
		return number, nil
	case number == 30:
		return 0, refused("row 30 cannot be overridden: a directory that cannot be used has said so in the record " +
			"before an order could " +
			"reach it; 'quorate restore' can begin a new history from it")
	}
	return 0, refused("row %q: 42 and 47 can be overridden", text)
}

func checkOverride(b book, number int, member, reason string) (draft, error) {
	var d draft
	risk := risks[number]
	id, err := record.ParseMemberID(member)
	known := members(b.View)
	place, ok := known[id]
	if err != nil || !ok {
		return d, refused("member %q: the record knows no such member; it knows %s", member, memberList(known))
	}
	d.order = record.Order{Kind: record.OrderOverride, Row: number, MemberID: id, Reason: reason}
	d.means, d.back, d.then = fmt.Sprintf(risk, id, place), withdrawIt, ", before it is carried out"
	d.confirm = fmt.Sprintf("Override row %d for member %s of %s?", number, id, place)
	if o, ok := b.inForce(func(o record.Order) bool {
		// done: it was about another time
		return o.Kind == record.OrderOverride && o.Row == number && o.MemberID == id && o.Done == nil
	}); ok {
		d.already = fmt.Sprintf("Order %d says so already, given by %s at %s; it is %s.", o.Number, o.By, when(o.Time),
			stateText(b.states[o.Number]))
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
			id := i.MemberID
			if i.Started != nil {
				id = i.Started.MemberID
			}
			if id != 0 && i.Epoch == formed.Number {
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
