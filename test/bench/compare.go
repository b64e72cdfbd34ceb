package main

import (
	"context"
	"fmt"
	"os"
	"slices"
)

// comparison is quorate against the floor with the same number of replicas.
type comparison struct {
	Quorate []round `json:"quorate"`
	Floor   []round `json:"floor"`
}

// compare runs rounds of quorate and of the floor in turns.
func (b *bench) compare(ctx context.Context, n int, into **comparison) error {
	c := &comparison{}
	*into = c
	for i := range b.rounds {
		q, err := b.once(ctx, b.quorateWorld, n, n > 1)
		if err != nil {
			return fmt.Errorf("quorate, %d replicas, round %d: %w", n, i+1, err)
		}
		f, err := b.once(ctx, b.floorWorld, n, false)
		if err != nil {
			return fmt.Errorf("floor, %d replicas, round %d: %w", n, i+1, err)
		}
		c.Quorate, c.Floor = append(c.Quorate, q), append(c.Floor, f)
		b.say("%d replicas, round %d of %d: quorate %.2f s, floor %.2f s", n, i+1, b.rounds, q.Took, f.Took)
	}
	return nil
}

// once runs one round from nothing to nothing.
func (b *bench) once(ctx context.Context, prepare func(context.Context, int) (*world, error), n int,
	voters bool) (round, error) {
	w, err := prepare(ctx, n)
	if err != nil {
		return round{}, err
	}
	busy, err := awaitQuiet(ctx)
	if err != nil {
		return round{}, err
	}
	project, r, err := boot(ctx, w, voters)
	r.Busy = busy
	if err != nil {
		return r, err
	}
	if err := project.Close(context.WithoutCancel(ctx)); err != nil {
		return r, err
	}
	if b.keep {
		return r, nil
	}
	return r, os.RemoveAll(w.dir)
}

// disturbed counts the rounds that began on a machine that was busy with something else.
func (c *comparison) disturbed() (n, all int) {
	if c == nil {
		return 0, 0
	}
	for _, r := range append(slices.Clone(c.Quorate), c.Floor...) {
		if all++; r.Busy > quietEnough {
			n++
		}
	}
	return n, all
}

// say prints progress for a person.
func (b *bench) say(format string, args ...any) { fmt.Fprintf(os.Stderr, "· "+format+"\n", args...) }

// spread is a median and its extremes.
type spread struct {
	Median float64 `json:"median"`
	Min    float64 `json:"min"`
	Max    float64 `json:"max"`
}

func spreadOf(values []float64) spread {
	if len(values) == 0 {
		return spread{}
	}
	sorted := slices.Sorted(slices.Values(values))
	middle := len(sorted) / 2
	median := sorted[middle]
	if len(sorted)%2 == 0 {
		median = (sorted[middle-1] + sorted[middle]) / 2
	}
	return spread{Median: median, Min: sorted[0], Max: sorted[len(sorted)-1]}
}

func took(rounds []round) spread {
	var values []float64
	for _, r := range rounds {
		values = append(values, float64(r.Took))
	}
	return spreadOf(values)
}
