package support

import (
	"strings"

	"github.com/quorate/quorate/internal/replica"
)

// Configured are the values that a person has written into the document, and that may be secrets. The document may be
// nil.
func Configured(c *replica.Cluster) (out []string) {
	if c == nil {
		return nil
	}
	out = append(out, c.Seal.Key)
	if _, key, found := strings.Cut(c.Seal.Key, "://"); found {
		out = append(out, key)
	}
	for _, component := range c.Components {
		for _, arg := range component.ExtraArgs {
			if _, value, found := strings.Cut(arg, "="); found {
				out = append(out, value)
			} else if !strings.HasPrefix(arg, "-") {
				out = append(out, arg)
			}
		}
		for _, value := range component.Env {
			out = append(out, value)
		}
	}
	return out
}
