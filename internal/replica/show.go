package replica

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"
)

// The schemes of a record in a bucket and of a seal key. Only the last holds the key itself.
const (
	gsScheme     = "gs://"
	kmsScheme    = "gcpkms://"
	base64Scheme = "base64key://"
)

// redacted stands where a secret was.
const redacted = "REDACTED"

// Show is the document as it is in force: every field, defaults filled in, the seal key and the values of the
// components' env redacted. It reads as a document, but with a base64key it does not validate as one: the key is
// gone.
func (c *Cluster) Show() ([]byte, error) {
	shown := *c
	shown.SetDefaults()
	out, err := yaml.Marshal(&shown)
	if err != nil {
		return nil, fmt.Errorf("show configuration: %w", err)
	}
	return out, nil
}

// String is the key's URL without what is secret in it, so that printing a Cluster never prints the key.
func (s Seal) String() string {
	switch {
	case s.Key == "", strings.HasPrefix(s.Key, kmsScheme):
		return s.Key
	case strings.HasPrefix(s.Key, base64Scheme):
		return base64Scheme + redacted
	default:
		return redacted
	}
}

// GoString keeps %#v from printing the key.
func (s Seal) GoString() string { return fmt.Sprintf("replica.Seal{%q}", s.String()) }

// shownSeal is a Seal that is printed as it is.
type shownSeal Seal

// MarshalYAML shows no key.
func (s Seal) MarshalYAML() (any, error) { return shownSeal{Key: s.String()}, nil }

// MarshalJSON shows no key.
func (s Seal) MarshalJSON() ([]byte, error) { return json.Marshal(shownSeal{Key: s.String()}) }

// Env is what is added to a component's environment: the values may be secrets, so none is ever printed.
type Env map[string]string

// names are the variables with something else in place of their values.
func (e Env) names() map[string]string {
	shown := make(map[string]string, len(e))
	for name := range e {
		shown[name] = redacted
	}
	return shown
}

// String names the variables.
func (e Env) String() string { return fmt.Sprint(slices.Sorted(maps.Keys(e))) }

// GoString keeps %#v from printing the values.
func (e Env) GoString() string { return "replica.Env" + e.String() }

// MarshalYAML shows no value.
func (e Env) MarshalYAML() (any, error) { return e.names(), nil }

// MarshalJSON shows no value.
func (e Env) MarshalJSON() ([]byte, error) { return json.Marshal(e.names()) }
