package replica

import (
	"fmt"
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

// Show is the document as it is in force: every field, defaults filled in, the seal key redacted. It reads as a
// document, but with a base64key it does not validate as one: the key is gone.
func (c *Cluster) Show() ([]byte, error) {
	shown := *c
	shown.SetDefaults()
	shown.Seal.Key = c.Seal.String()
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
