package order

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/quorate/quorate/etcdmember/table"
	"github.com/quorate/quorate/internal/record"
)

// Text is an order as the operator gave it.
func Text(o record.Order) string {
	text := string(o.Kind)
	switch {
	case o.Kind == record.OrderReplicas:
		text += " " + strconv.Itoa(o.Replicas)
	case o.Place != nil:
		text += " " + o.Place.String()
	case o.Until != nil:
		text += " until " + when(*o.Until)
	case o.Kind == record.OrderOverride:
		text += fmt.Sprintf(" %s, member %s", table.Row(o.Row).Name(), o.MemberID)
	case o.Kind == record.OrderWithdraw:
		text += " " + strconv.FormatUint(o.Withdraws, 10)
	case o.Restore != nil:
		text += fmt.Sprintf(" on %s from %s, which ends epoch %d", o.Restore.Replica, sourceText(o.Restore.From),
			o.Restore.Ends)
		if len(o.Restore.Silent) > 0 {
			text += ", silent: " + strings.Join(o.Restore.Silent, ", ")
		}
	}
	return text
}

// sourceText names what a restore is made of.
func sourceText(s record.Source) string {
	if s.Snapshot != "" {
		return "snapshot " + s.Snapshot
	}
	return fmt.Sprintf("the %s of member %s", s.Kind, s.MemberID)
}

// StateText is how an order stands, for a person.
func StateText(s table.OrderStatus) string {
	if s.By != 0 {
		return fmt.Sprintf("%s by order %d", s.State, s.By)
	}
	return string(s.State)
}

// given says by whom and when an order was given.
func given(o record.Order) string { return fmt.Sprintf("given by %s at %s", o.By, when(o.Time)) }

// when spells a time in UTC.
func when(t time.Time) string { return t.UTC().Format(time.DateTime + " UTC") }

// InstanceText names an instance.
func InstanceText(i record.Incarnation) string {
	return fmt.Sprintf("%s (instance %s)", i.Place, i.InstanceID)
}

// InstanceTexts names each of several instances.
func InstanceTexts(list []record.Incarnation) (out []string) {
	for _, i := range list {
		out = append(out, InstanceText(i))
	}
	return out
}
