package table

// rowNamesForPeople are the names of the rows that have numbers. People meet a row by its name; the specification, JSON
// and the metrics keep the number.
var rowNamesForPeople = map[Row]string{
	0: "superseded", 1: "unread-but-started", 2: "unread-record", 3: "damaged-but-started", 4: "damaged-record",
	5: "ahead-and-valid", 6: "ahead", 7: "foreign-disk", 8: "epoch-ends", 9: "restore", 10: "abandoned-epoch",
	11: "seeder-gone", 12: "older-epoch", 13: "half-made", 14: "claim", 15: "unknown-cluster", 16: "seed",
	17: "form", 18: "broken-seed", 19: "another-seeds", 22: "survivors-restore", 23: "join", 24: "empty-without-quorum",
	25: "listed", 26: "removed-while-away", 27: "said-removed", 28: "needed", 29: "replace-broken",
	30: "needed-but-broken",
	40: "dead-voter", 41: "dead-voter-disk-left", 42: "unreachable-voter", 43: "stuck-learner", 44: "promote",
	45: "orders", 46: "corrupt-member", 47: "members-differ", 48: "full-database", 49: "number-of-voters",
}

// Name is the row's name for people.
func (r Row) Name() string {
	if name, ok := rowNamesForPeople[r]; ok {
		return name
	}
	return r.String()
}

// RowOf finds the row of a name.
func RowOf(name string) (Row, bool) {
	for r, n := range rowNamesForPeople {
		if n == name {
			return r, true
		}
	}
	return 0, false
}
