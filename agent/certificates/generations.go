package certificates

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/quorate/quorate/certs"
	"github.com/quorate/quorate/internal/replica"
)

const (
	bundleRefused = "bundle-refused"
	bundleNext    = "Find out who wrote that generation: `quorate bundle import` refuses it. Remove the object from " +
		"the bucket; this replica keeps its certificates."
	bundleFuture = "Correct the clock that is wrong; this replica goes on with the generation before."
)

// readBundle finds the generation that this replica takes. It begins with the one that its disk has seen, or with the
// oldest in the record, and goes up for as long as each continues the one before. One that does not is refused: other
// replicas would refuse a replica that has its CAs. So is one of a clock that was ahead: until its date has come nobody
// can use it, and the one before still serves.
func (c *Certificates) readBundle(ctx context.Context, seen uint64) (generations, error) {
	all, err := readGenerations(ctx, c.me.Bundles, seen)
	if err != nil {
		return generations{}, err
	}
	n, refused := certs.Continued(all)
	next, now := bundleNext, time.Now()
	for ; n > 1 && all[n-1].FromTheFuture(now) != nil; n-- {
		refused, next = all[n-1].FromTheFuture(now), bundleFuture
	}
	c.refuse(refused, next)
	took := generations{bundle: all[n-1], former: all[:n-1]}
	return took, took.bundle.Check(now)
}

// readGenerations opens the generations from the one that the disk has seen, oldest first: at least one, or an error.
func readGenerations(ctx context.Context, from Bundles, seen uint64) ([]*certs.Bundle, error) {
	numbers, err := from.Generations(ctx)
	if err != nil {
		return nil, err
	}
	if len(numbers) == 0 {
		return nil, errors.New("the record holds no bundle: it was lost, or this is the wrong bucket; " +
			"nobody makes a second CA for a cluster that was formed")
	}
	newest := numbers[len(numbers)-1]
	// A newest one that is older than what was seen stays: certs.Ensure refuses it.
	numbers = slices.DeleteFunc(numbers, func(n uint64) bool { return n < min(seen, newest) })
	if numbers[0] > seen && seen > 0 {
		return nil, fmt.Errorf("the record lacks bundle generation %d, which this disk has: "+
			"nothing shows that generation %d continues it", seen, newest)
	}
	var out []*certs.Bundle
	for _, n := range numbers {
		b, err := readGeneration(ctx, from, n)
		if err != nil {
			return nil, err
		}
		out = append(out, b)
	}
	return out, nil
}

func readGeneration(ctx context.Context, from Bundles, n uint64) (*certs.Bundle, error) {
	plaintext, err := from.Read(ctx, n)
	if err != nil {
		return nil, err
	}
	return certs.DecodeGeneration(n, plaintext)
}

// refuse says in the status and in the log which generation is not taken, and why; nil: none is refused any more. It
// stays until the bundle is read again, also when the phase is over: the replica goes on with what it has.
func (c *Certificates) refuse(why error, next string) {
	if why == nil {
		c.cfg.Waits.Release(bundleRefused)
		return
	}
	c.cfg.Waits.Hold(replica.Wait{Name: bundleRefused, Reason: why.Error(), Next: next, Since: time.Now()})
}
