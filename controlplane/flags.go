package controlplane

import (
	"slices"
	"strings"

	"github.com/quorate/quorate/internal/replica"
)

// flags are a program's flags in the order in which a person reads them.
type flags []struct{ name, value string }

// accumulates are flags that hold a list to which an extra argument adds, rather than replaces it: dropping
// NodeRestriction because someone wanted one more plugin would let a kubelet change any node.
var accumulates = map[string]bool{"enable-admission-plugins": true}

// with spells the flags as arguments, with the configuration's extra ones behind. A flag that an extra argument names
// is left out, not just overruled: a second --name adds to a list instead of replacing it.
func (f flags) with(extra []string) []string {
	named := make(map[string]bool, len(extra))
	for _, arg := range extra {
		named[flagName(arg)] = true
	}
	args := make([]string, 0, len(f)+len(extra))
	for _, own := range f {
		if !named[own.name] || accumulates[own.name] {
			args = append(args, "--"+own.name+"="+own.value)
		}
	}
	return slices.Concat(args, extra)
}

// flagName is the flag that an argument sets, as the components spell it: they take "_" for "-". It is empty where the
// argument is no flag.
func flagName(arg string) string {
	return strings.ReplaceAll(replica.FlagName(arg), "_", "-")
}

// valuesOf are the values that the arguments give a flag, in their order; a bare one is true.
func valuesOf(args []string, flag string) []string {
	var values []string
	for _, arg := range args {
		if flagName(arg) != flag {
			continue
		}
		_, value, given := strings.Cut(arg, "=")
		if !given {
			value = "true"
		}
		values = append(values, value)
	}
	return values
}
