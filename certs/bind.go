package certs

import (
	"bytes"
	"fmt"
	"slices"
)

// bind finds out which bundle the folder follows and refuses what may not take it over. It runs before any step that
// writes.
func (k *keeper) bind() error {
	data, _, err := k.disk.read(k.Files.Binding())
	if unread(err) {
		return fmt.Errorf("binding: %w", err)
	}
	if err == nil {
		k.bound, err = parseBinding(data)
	}
	if err != nil {
		k.bound, err = k.boundByFiles(err) // a bundle writes the binding anew; without one it is among what is needed
	}
	if err != nil || k.bound.Generation == 0 {
		return err
	}
	if k.ClusterUID != "" && k.bound.ClusterUID != k.ClusterUID {
		return fmt.Errorf("folder of cluster %s, wanted %s: %w", k.bound.ClusterUID, k.ClusterUID, ErrOtherCluster)
	}
	k.report.Generation = k.bound.Generation
	if k.Bundle == nil {
		return nil
	}
	next, err := k.Bundle.binding()
	if err != nil {
		return err
	}
	if err := k.bound.accepts(next); err != nil || next.Generation == k.bound.Generation {
		return err
	}
	return k.bound.follows(k.generations())
}

// generations are those at hand, oldest first.
func (k *keeper) generations() []*Bundle { return append(slices.Clone(k.Former), k.Bundle) }

// boundByFiles is what a binding that is lost must have said. The files in its folder come from one generation, or from
// two in a row where a crash came between them: then the newer one counts. A file that comes from none of the
// generations at hand is of a newer one, or of other CAs. A folder without files, or whose files are damaged too,
// follows none.
func (k *keeper) boundByFiles(lost error) (binding, error) {
	if k.Bundle == nil {
		return binding{}, nil
	}
	all, newest := k.generations(), -1
	for _, m := range sharedFiles(k.Files) {
		data, _, err := k.disk.read(m.path)
		if unread(err) {
			return binding{}, fmt.Errorf("%s: %w", m.name, err)
		}
		if err != nil || m.parse(data) != nil {
			continue
		}
		n, err := origin(m, data, all)
		if err != nil {
			return binding{}, err
		}
		if n == len(all) {
			return binding{},
				fmt.Errorf("binding: %s, and %s beside it is of none of the generations from %d to %d: %w",
					reasonOf(lost), m.name, all[0].Generation, k.Bundle.Generation, ErrNotContinued)
		}
		newest = max(newest, n)
	}
	if newest < 0 {
		return binding{}, nil
	}
	return all[newest].binding()
}

// origin is the index of the first generation that makes this very file; len(all): none does.
func origin(m managed, data []byte, all []*Bundle) (int, error) {
	for n, b := range all {
		want, err := m.make(b)
		if err != nil {
			return 0, fmt.Errorf("%s: %w", m.name, err)
		}
		if bytes.Equal(want, data) {
			return n, nil
		}
	}
	return len(all), nil
}
