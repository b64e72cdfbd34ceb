package record

import (
	"context"
	"fmt"

	"github.com/quorate/quorate/internal/replica"
)

// Remains is a record of which objects may be lost: what a rebuilding of it starts from.
type Remains struct {
	View
	// Orphans are confirmations whose incarnation is lost; a View is refused for one. Without the instance id one
	// cannot tell who is superseded, and every answer to that would stop or start the wrong VM.
	Orphans []Orphan
}

// Orphan is replicas/<zone>.<name>/<k>.started.json without <k>.json.
type Orphan struct {
	replica.Place
	Number  uint64
	Started Started
}

// lost is the orphan as an error.
func (o Orphan) lost() error {
	return fmt.Errorf("%s is there but %s is lost: quorate record rebuild brings it back",
		startedKey(o.Place, o.Number), incarnationKey(o.Place, o.Number))
}

// LostInception is View's; an orphan is such an object, too.
func (r Remains) LostInception() bool {
	return r.View.LostInception() || r.Inception == nil && len(r.Orphans) > 0
}

// Remains is View for a record that is known to be damaged, and it is as strict but for the orphans. Only what brings
// lost objects back may use it: nothing may be decided from it.
func (s *Store) Remains(ctx context.Context) (Remains, error) {
	entries, err := s.stableList(ctx)
	if err != nil {
		return Remains{}, markRecord(fmt.Errorf("read record: %w", err))
	}
	values, err := s.load(ctx, entries)
	if err != nil {
		return Remains{}, markRecord(fmt.Errorf("read record: %w", err))
	}
	return assemble(entries, values), nil
}
