package record

import (
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

// Lost is the orphan as an error.
func (o Orphan) Lost() error {
	return fmt.Errorf("%s is there but %s is lost: quorate record rebuild brings it back",
		StartedKey(o.Place, o.Number), IncarnationKey(o.Place, o.Number))
}

// LostInception is View's; an orphan is such an object, too.
func (r Remains) LostInception() bool {
	return r.View.LostInception() || r.Inception == nil && len(r.Orphans) > 0
}
