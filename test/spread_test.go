package test

import (
	"fmt"
	"slices"
	"time"
)

// spread is a set of measured times, as a person wants to see it.
type spread []time.Duration

// String is the least, the median, the 90th percentile and the most.
func (s spread) String() string {
	if len(s) == 0 {
		return "none"
	}
	at := func(q float64) time.Duration { return s.at(q).Round(10 * time.Millisecond) }
	return fmt.Sprintf("%d; min %s, median %s, p90 %s, max %s", len(s), at(0), at(0.5), at(0.9), at(1))
}

// at is a quantile, 0 to 1, of one time at least.
func (s spread) at(q float64) time.Duration {
	sorted := slices.Sorted(slices.Values(s))
	return sorted[int(q*float64(len(sorted)-1))]
}
