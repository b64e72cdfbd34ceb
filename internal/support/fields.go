package support

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
)

// fields are the keys of JSON objects that are taken, wherever they stand, with the shape of their values. A key that
// is not here is left out with all that is below it.
var fields = join(map[shape]string{
	number: `accepted age applied bytes bundle catchUpEntries code commit committed count cpuWeight diskIDUnknown done
		emptyDisk enabled ended ends epoch epochs eventsDropped failures fileSystemBytes format freeBytes
		generation healthPort heard inPlace inUseBytes incarnation index keys known lag lastIndex leader learner leads
		maxLearners memoryHighBytes memoryMaxBytes misses newestEpoch number objects order outputDropped park pid port
		quotaBytes ready
		readySeconds reportAge restart restarts revision running saving seconds size snapshots start started step
		stored survives term times tookSeconds totalBytes uptimeSeconds wanted watch well withdraws withdrawn writes
		replicas closing row`,
	moment: `answerWithin at beat bootedAgain created daily due duration election heartbeat hourly interval noneSince notAfter
		pass pinned recordRead renewed since startWithin time turn until`,
	name: `act apiVersion class cluster component elected election etcd etcdVersion go holder keepZones kernel kind
		kubernetes leader leaderRow level name newest outcome phase project quorate region replica role row runtimeUnit
		dataDisk down standing state type unit version waits writesWith zone`,
	id:      `bootID clusterID clusterUID diskID id instanceID member memberID projectNumber uid`,
	address: `address addresses externalIP internalIP podCIDR serviceCIDRs`,
	place:   `key url`,
	folder:  `binary dataDir folder mount path runtimeSocket`,
	digest:  `commit manifest`,
	text: `about act by cause class dnsDomain error faults field found held kept kind means message next outcome phase
		reason role row startsAgain state subject text type unlimited unreachable what why`,
	flags: `extraArgs`,
	part: `abandoned accepted addons archives blocked boot by certificate certificates claim closed cluster components
		consequences contested dataDisk database disk diskEpoch disks done encryption endpoint epochs etcd events
		explanation failing findings formed image incarnations inception kubelet leader leases logLoss marks members memory
		network notReady orders outcome pause pendingRestart phases place plan probe record records remote replica
		replicas resources
		restore rows seal seeder snapshot snapshots source started steps stopped units verdict vmStops voters waits`,
	named: `components`,
	names: `env`,
})

// join makes the table. A key may have values of several shapes, in the order of the shapes.
func join(lists map[shape]string) map[string][]shape {
	out := map[string][]shape{}
	for _, s := range slices.Sorted(maps.Keys(lists)) {
		for key := range strings.FieldsSeq(lists[s]) {
			out[key] = append(out[key], s)
		}
	}
	return out
}

// Taken is what of a value is taken, as JSON would have it.
func (f *Filter) Taken(v any) (any, error) {
	b, err := json.Marshal(v)
	if err != nil {
		return nil, fmt.Errorf("take what is listed: %w", err)
	}
	var tree any
	decoder := json.NewDecoder(strings.NewReader(string(b)))
	decoder.UseNumber()
	if err := decoder.Decode(&tree); err != nil {
		return nil, fmt.Errorf("take what is listed: %w", err)
	}
	return f.value(tree, part), nil
}

// value is what of a value of a shape is taken; nil: nothing.
func (f *Filter) value(v any, shapes ...shape) any {
	switch v := v.(type) {
	case nil:
		return nil
	case []any:
		out := []any{}
		shapes = slices.DeleteFunc(slices.Clone(shapes), func(s shape) bool { return s == named })
		for _, item := range v {
			if taken := f.value(item, shapes...); taken != nil {
				out = append(out, taken)
			}
		}
		return out
	case map[string]any:
		return f.object(v, shapes)
	}
	for _, s := range shapes {
		if taken := f.single(v, s); taken != nil {
			return taken
		}
	}
	return leftOut
}

// object is what of an object is taken: one whose keys are names, if it may be that.
func (f *Filter) object(v map[string]any, shapes []shape) any {
	out := map[string]any{}
	for key, below := range v {
		known := f.names[key] || idForm().MatchString(key) || nameForm().MatchString(key) && !looksRandom(key)
		switch {
		case slices.Contains(shapes, named):
			if known {
				out[key] = f.value(below, part)
			}
		case slices.Contains(shapes, names):
			if known {
				out[key] = leftOut
			}
		case slices.Contains(shapes, part) && fields[key] != nil:
			out[key] = f.value(below, fields[key]...)
		}
	}
	return out
}

// single is what of a number, a boolean or a string is taken; nil: nothing.
func (f *Filter) single(v any, s shape) any {
	in, isText := v.(string)
	switch {
	case s == part || s == named || s == names:
		return nil
	case !isText && s != flags:
		return v // a number or a boolean
	case s == flags:
		if flag := flagForm().FindString(in); flag != "" {
			return flag
		}
		return nil
	}
	if out, ok := f.fits(s, in); ok {
		return out
	}
	return nil
}
