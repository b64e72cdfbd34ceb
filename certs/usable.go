package certs

import (
	"errors"
	"fmt"
	"slices"
)

// Usable says why some of a replica's leaves cannot be used, by the disk alone. It is nil where each is there, in its
// time, this very replica's, and of a CA that the disk trusts. It writes nothing and ignores Request.Bundle.
func Usable(r Request, leaves ...Leaf) error {
	r.Bundle = nil
	k := &keeper{Request: r, disk: disk{read: readRegular}}
	for _, step := range []func() error{k.plan, k.bind} {
		if err := step(); err != nil {
			return fmt.Errorf("check certificates: %w", err)
		}
	}
	for _, s := range k.specs {
		if !slices.Contains(leaves, s.Leaf) {
			continue
		}
		d, _, err := k.judge(s)
		if err != nil {
			return fmt.Errorf("check certificates: %w", err)
		}
		if d.Action == Replace {
			k.need(string(s.Leaf), d.Reason)
		}
	}
	return errors.Join(k.unusable...)
}
