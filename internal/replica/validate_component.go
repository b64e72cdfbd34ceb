package replica

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/quorate/quorate/internal/pattern"
)

var envName = pattern.Of(`^[A-Za-z_][A-Za-z0-9_]*$`)

// reservedEnv belongs to systemd's talk with the agent; a child that had it could declare the agent ready.
var reservedEnv = pattern.Of(`^(NOTIFY_SOCKET|WATCHDOG_.*|LISTEN_.*)$`)

// FlagRule is what FlagName wants, for people.
const FlagRule = "--NAME=VALUE or --NAME, each flag with its value in one argument, and nothing between NAME and ="

var flagShape = pattern.Of(`^--([A-Za-z0-9][-_.:A-Za-z0-9]*)(=|$)`)

// FlagName is the name of the flag that an argument sets, as every program reads it; empty where it is no flag.
func FlagName(arg string) string {
	if parts := flagShape().FindStringSubmatch(arg); parts != nil {
		return parts[1]
	}
	return ""
}

func (c Component) validate(name string, f *Faults) {
	at := join("components", name)
	if !dnsLabel().MatchString(name) {
		f.add("components", name, "names that are DNS labels: 1 to 63 of a-z, 0-9 and -, beginning and ending with a "+
			"letter or digit")
	}
	if name == AddonManager {
		f.add("components", name, "other names: this one is quorate's own, and the field addons says how it runs")
	}
	unknown := !Known(name) && c.Binary == "" && c.Probe == nil
	if unknown {
		*f = append(*f, Fault{Field: at,
			Found:   "a component that quorate does not know" + didYouMean(Near(name, knownComponents)),
			Allowed: strings.Join(knownComponents, ", ") + "; any other with the fields binary and probe"})
	} else if c.Binary == "" && !Known(name) {
		f.add(at+".binary", "", pathRule+"; quorate does not know this component")
	} else if !cleanPath(c.Binary) {
		f.add(at+".binary", c.Binary, pathRule)
	}
	if Known(name) && c.Elect != ElectSelf {
		f.add(at+".elect", c.Elect, "self: "+name+" elects a leader itself, or needs none")
	} else {
		oneOf(f, at+".elect", c.Elect, ElectSelf, ElectAgent)
	}
	if !unknown {
		c.validateProbe(name, at, f)
	}
	for i, arg := range c.ExtraArgs {
		if FlagName(arg) == "" || strings.ContainsFunc(arg, isControl) {
			f.add(fmt.Sprintf("%s.extraArgs[%d]", at, i), arg, FlagRule)
		}
	}
	c.validateEnv(at, f)
	c.Resources.validate(at+".resources", f)
}

// leastMemory is enough for a small program. One byte less is a mistaken unit.
const leastMemory = 16 << 20

func (r Resources) validate(at string, f *Faults) {
	for name, bytes := range map[string]int64{"memoryMaxBytes": r.MemoryMaxBytes,
		"memoryHighBytes": r.MemoryHighBytes} {
		if bytes != 0 && bytes < leastMemory {
			f.add(at+"."+name, strconv.FormatInt(bytes, 10), fmt.Sprintf("%d (16 MiB) or more, in bytes", leastMemory))
		}
	}
	if r.MemoryMaxBytes > 0 && r.MemoryHighBytes > r.MemoryMaxBytes {
		f.add(at+".memoryHighBytes", strconv.FormatInt(r.MemoryHighBytes, 10),
			fmt.Sprintf("not more than memoryMaxBytes, %d",
				r.MemoryMaxBytes))
	}
	if r.CPUWeight < 0 || r.CPUWeight > 10000 {
		f.add(at+".cpuWeight", strconv.Itoa(r.CPUWeight), "1 to 10000")
	}
}

// validateProbe: quorate's own probes of the components that it knows are never replaced.
func (c Component) validateProbe(name, at string, f *Faults) {
	if c.Probe != nil {
		c.Probe.validate(at+".probe", f)
	}
	if !Known(name) {
		if c.Probe == nil {
			f.add(at+".probe", "", "a probe; quorate does not know this component")
		}
		return
	}
	if c.Probe != nil {
		f.add(at+".probe", c.Probe.URL, "none: quorate probes "+name+" itself")
	}
}

// validateEnv shows names only: a value may be a secret.
func (c Component) validateEnv(at string, f *Faults) {
	for _, key := range sortedKeys(c.Env) {
		switch {
		case !envName().MatchString(key):
			f.add(at+".env", key, "names of letters, digits and _, not beginning with a digit")
		case reservedEnv().MatchString(key):
			f.add(at+".env", key, "other names: this one is systemd's word to the agent")
		case strings.ContainsRune(c.Env[key], 0):
			*f = append(*f, Fault{Field: at + ".env." + key, Found: "a value with a zero byte",
				Allowed: "text without one"})
		}
	}
}
