package controlplane

import (
	"fmt"
	"maps"
	"slices"

	"github.com/quorate/quorate/internal/replica"
)

// Load reads a Cluster document as a master does, and names every fault at once: also those that only this package
// knows.
func Load(sources ...replica.Source) (*replica.Cluster, error) {
	return replica.LoadAnd(Validate, sources...)
}

// Validate checks what the configuration says of components beyond what Cluster.Validate can know: it is the flags that
// this package knows. The error is replica.Faults with every fault. The document may be one that Cluster.Validate
// refuses.
func Validate(c *replica.Cluster) error {
	var faults replica.Faults
	for _, name := range slices.Sorted(maps.Keys(c.Components)) {
		if !replica.Known(name) {
			continue // its arguments are not ours to judge
		}
		for i, arg := range c.Components[name].ExtraArgs {
			if allowed := argFault(name, arg); allowed != "" {
				faults = append(faults, replica.Fault{
					Field: fmt.Sprintf("components.%s.extraArgs[%d]", name, i), Found: fmt.Sprintf("%q", arg),
					Allowed: allowed,
				})
			}
		}
	}
	if on := c.Components[replica.APIServer].Enabled; on != nil && !*on {
		faults = append(faults, replica.Fault{
			Field: "components." + replica.APIServer + ".enabled", Found: `"false"`,
			Allowed: "true, since everything else needs it",
		})
	}
	faults = append(faults, issuerFaults(c)...)
	faults = append(faults, podRangeFaults(c)...)
	if len(faults) == 0 {
		return nil
	}
	return faults
}

// argFault says what would be allowed in place of an argument; empty: the argument is.
func argFault(component, arg string) string {
	name := flagName(arg)
	if name == "" {
		return replica.FlagRule
	}
	if why := whyOwned(component, name); why != "" {
		return fmt.Sprintf("any flag but --%s, which is quorate's: %s", name, why)
	}
	return judge(component, arg)
}
