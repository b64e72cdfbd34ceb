package table

// Standstill is why nobody is promoted or removed by this record, whatever the rows of the leader loop say: it cannot
// be read or is damaged, it was rolled back (ahead: this replica's disk has seen more than it holds), or the epoch
// ends. Each act of these rows asks the record.
func (h History) Standstill(ahead bool) (Plan, bool) {
	p := Plan{}
	switch {
	case h.RecordErr != nil:
		p = wait(WaitRecordUnreadable, "the record cannot be read: "+h.RecordErr.Error()+".",
			"Nobody is promoted or removed until it can be read.")
	case len(h.Damages()) > 0:
		p = wait(WaitRecordLost, "the record is damaged: "+h.Damages()[0].String()+".",
			"Nobody is promoted or removed. Run `quorate record rebuild`.")
	case ahead:
		p = wait(WaitRecordRolledBack, "the record was rolled back: this replica has seen more than it holds.",
			"Nobody is promoted or removed by what is past. Run `quorate record rebuild`.")
	case h.Formed == nil || h.newest != h.Formed && h.newest.Outcome == nil || h.Formed.Closed != nil,
		h.Orders.accepted(h.Formed.Number) != 0:
		p = wait(WaitEpochClosed, "the epoch has ended, is being ended by order, or is not formed yet.",
			"Nobody is promoted or removed.")
	default:
		return p, false
	}
	p.Row = RowQuiet
	p.Blocked.Row = RowQuiet.String()
	return p, true
}
