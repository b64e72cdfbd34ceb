package certs

import (
	"encoding/json"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
)

// The refusals that a caller tells apart. Nothing on disk is touched before they are given.
var (
	// ErrOtherCluster: the folder belongs to another cluster than the bundle or the caller.
	ErrOtherCluster = errors.New("of another cluster")
	// ErrRollback: the disk has seen a newer generation of the bundle. Taking the older would bring dropped CAs and
	// keys back.
	ErrRollback = errors.New("older than what this disk has seen")
	// ErrOtherAuthorities: same generation, other CAs. Two bundles were made; mixing them would split the cluster.
	ErrOtherAuthorities = errors.New("not the CAs that this disk has seen in the same generation")
	// ErrNotContinued: a newer generation does not continue the one that this disk has seen, or nothing shows that it
	// does. With it half of the cluster would refuse the other.
	ErrNotContinued = errors.New("does not continue what this disk has seen")
	// ErrBundleNeeded: something must be issued, and no bundle was given.
	ErrBundleNeeded = errors.New("the bundle is needed")
)

// binding is binding.json: which bundle the folder's files come from. It is written before any of them, so that after a
// crash in between nothing older is taken. Pins are SHA-256 of the issuing CAs' public keys.
type binding struct {
	ClusterUID string               `json:"clusterUID"`
	Generation uint64               `json:"generation"`
	Pins       map[Authority]string `json:"pins"`
}

// Binding says which bundle Dir was filled from: cluster uid, generation and the CAs' pins, no secret.
func (f Files) Binding() string { return filepath.Join(f.Dir, "binding.json") }

func (b *Bundle) binding() (binding, error) {
	out := binding{ClusterUID: b.ClusterUID, Generation: b.Generation, Pins: map[Authority]string{}}
	for name, a := range b.authorities {
		p, err := pin(a.cert.PublicKey)
		if err != nil {
			return out, fmt.Errorf("%s CA: %w", name, err)
		}
		out.Pins[name] = p
	}
	return out, nil
}

func parseBinding(data []byte) (binding, error) {
	var b binding
	if err := json.Unmarshal(data, &b); err != nil {
		return b, fmt.Errorf("not a binding: %w", err)
	}
	if b.ClusterUID == "" || b.Generation == 0 || len(b.Pins) != len(Authorities()) {
		return b, errors.New("not a binding: a field is missing")
	}
	return b, nil
}

// accepts says whether files bound to b may be taken over by a bundle that is bound to next. Whether a newer generation
// continues this one is checked by follows.
func (b binding) accepts(next binding) error {
	switch {
	case b.ClusterUID != next.ClusterUID:
		return fmt.Errorf("bundle of cluster %s, folder of cluster %s: %w", next.ClusterUID, b.ClusterUID,
			ErrOtherCluster)
	case next.Generation < b.Generation:
		return fmt.Errorf("bundle generation %d, folder generation %d: %w", next.Generation, b.Generation, ErrRollback)
	case next.Generation > b.Generation:
		return nil
	}
	for _, name := range Authorities() {
		if b.Pins[name] != next.Pins[name] {
			return fmt.Errorf("%s CA: bundle has the key %s, folder has %s: %w", name, next.Pins[name], b.Pins[name],
				ErrOtherAuthorities)
		}
	}
	return nil
}

// follows says whether files bound to b may be taken over by the last of these generations, oldest first. The one that
// b is bound to, by its pins, must be among them, and from it on each one must continue the one before.
func (b binding) follows(generations []*Bundle) error {
	n := slices.IndexFunc(generations, func(g *Bundle) bool { return g.Generation == b.Generation })
	if n < 0 {
		return fmt.Errorf("%s is to follow generation %d, which is not there to compare it with: %w",
			generations[len(generations)-1], b.Generation, ErrNotContinued)
	}
	same, err := generations[n].binding()
	if err != nil {
		return err
	}
	if err := b.accepts(same); err != nil {
		return err
	}
	_, err = Continued(generations[n:])
	return err
}
