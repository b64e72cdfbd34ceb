package plan

import (
	"fmt"
	"slices"
	"strings"
	"time"
)

const (
	// contestedAfter is how many writes of one field in a row are a contest: a person does not change it back that
	// often.
	contestedAfter = 4
	// contestWindow ends a row: what has stayed right for that long is not contested.
	contestWindow = 10 * time.Minute
	// The pauses of a contest double from the first to the last.
	firstYield, lastYield = time.Minute, time.Hour
)

// Contest is the row of writes about one object that somebody else has undone, each time.
type Contest struct {
	// Hash is the manifest's: another manifest is no part of the row.
	Hash string
	// Fields are those that every write of the row was for; WholeObject where it was deleted.
	Fields []string
	// Owner is who set them last, as the object's field owners say; empty: they do not say.
	Owner string
	// Writes counts the row. Since is its first one, Last its last.
	Writes      int
	Since, Last time.Time
	pause       time.Duration
}

// WholeObject stands for the fields of an object that was deleted.
const WholeObject = "the whole object"

// After is the contest after one more write.
func (c *Contest) After(fields []string, owner string, now time.Time) *Contest {
	next := &Contest{Fields: fields, Owner: owner, Writes: 1, Since: now, Last: now}
	if c == nil || c.Over(now) {
		return next
	}
	common := slices.DeleteFunc(slices.Clone(c.Fields), func(f string) bool { return !slices.Contains(fields, f) })
	if len(common) == 0 {
		return next
	}
	next.Fields, next.Writes, next.Since = common, c.Writes+1, c.Since
	if next.Contested() {
		next.pause = min(max(firstYield, 2*c.pause), lastYield)
	}
	return next
}

// Contested says that somebody fights for the object.
func (c *Contest) Contested() bool { return c != nil && c.Writes >= contestedAfter }

// Yields says that the object is not written now: each write of a fight is undone, and costs both sides.
func (c *Contest) Yields(now time.Time) bool { return c.Contested() && now.Before(c.Next()) }

// Over says that the object has been left alone for so long that nobody fights for it any more.
func (c *Contest) Over(now time.Time) bool { return now.Sub(c.Last) > max(contestWindow, 2*c.pause) }

// Next is when it is written again.
func (c *Contest) Next() time.Time { return c.Last.Add(c.pause) }

// Reason is for people.
func (c *Contest) Reason() string {
	owner := c.Owner
	if owner == "" {
		owner = "somebody who names no field owner"
	}
	fields := c.Fields
	more := ""
	if n := len(fields) - listed; n > 0 {
		fields, more = fields[:listed], fmt.Sprintf(" and %d more", n)
	}
	return fmt.Sprintf("%s%s: changed back by %s after each of %d writes", strings.Join(fields, ", "), more, owner,
		c.Writes)
}
