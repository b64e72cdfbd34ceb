package plan

import "github.com/quorate/quorate/internal/replica"

// count is a membership in numbers.
type count struct {
	// members are voters and learners; voters those that vote, touch those voters that the leader hears of; spare the
	// learners that are in touch and ready, of which one can be promoted.
	members, voters, touch, spare int
}

func quorum(voters int) int { return voters/2 + 1 }

// survives is how many further voters may fail; below 0: there is no quorum.
func (c count) survives() int {
	if c.voters == 0 {
		return -1
	}
	return max(-1, c.touch-quorum(c.voters))
}

func (m Members) count() (c count) {
	for _, x := range m.List {
		c = c.with(x)
	}
	return c
}

func (c count) with(x Member) count {
	c.members++
	switch {
	case x.Voter && x.Heard:
		c.voters, c.touch = c.voters+1, c.touch+1
	case x.Voter:
		c.voters++
	case x.Heard && x.Ready:
		c.spare++
	}
	return c
}

// without is the membership once a place has left it. The last voter hands over to a learner that is ready, first.
func (m Members) without(p replica.Place) (c count) {
	for _, x := range m.List {
		if x.Place != p {
			c = c.with(x)
		}
	}
	if c.voters == 0 && c.spare > 0 {
		c.voters, c.touch, c.spare = 1, 1, c.spare-1
	}
	return c
}

// away is the membership while a place does not answer, and stays a member.
func (m Members) away(p replica.Place) (c count) {
	for _, x := range m.List {
		if x.Place == p {
			x.Heard, x.Ready = false, false
		}
		c = c.with(x)
	}
	return c
}
