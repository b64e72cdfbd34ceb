package replica

import (
	"encoding/json"
	"fmt"
	"time"

	"go.yaml.in/yaml/v3"
)

// Duration is a time.Duration that documents spell as Go does: 100ms, 1s, 15m.
type Duration time.Duration

// Duration returns the value as the standard library's type.
func (d Duration) Duration() time.Duration { return time.Duration(d) }

// String spells the duration as documents do.
func (d Duration) String() string { return time.Duration(d).String() }

// UnmarshalYAML decodes the document's spelling.
func (d *Duration) UnmarshalYAML(n *yaml.Node) error {
	v, err := time.ParseDuration(n.Value)
	if err != nil {
		return fmt.Errorf("line %d: %q is not a duration such as 100ms, 1s or 15m", n.Line, n.Value)
	}
	*d = Duration(v)
	return nil
}

// MarshalYAML encodes the document's spelling.
func (d Duration) MarshalYAML() (any, error) { return d.String(), nil }

// MarshalJSON encodes the document's spelling.
func (d Duration) MarshalJSON() ([]byte, error) { return json.Marshal(d.String()) }
