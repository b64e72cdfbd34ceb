package table

import "fmt"

// forgotten says what a leader knows this disk's member to have acknowledged, and its log does not hold; empty:
// nothing. Only with a quorum, which is one of the others: without one the directory may be all that is left, and
// what it lacks is in the leader's log.
func (h History) forgotten() string {
	if !AnswersQuorum(h.Facts) {
		return ""
	}
	for _, a := range h.Answers {
		ours := h.Agent.Epoch == h.Formed.Number && a.ClusterID == h.Formed.Outcome.Formed.ClusterID
		if ours && a.Acknowledged > h.Directory.LastIndex {
			return fmt.Sprintf("its log ends at index %d, and the leader, %s, has its acknowledgement of everything "+
				"up to %d",
				h.Directory.LastIndex, a.Place, a.Acknowledged)
		}
	}
	return ""
}
