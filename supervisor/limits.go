package supervisor

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
)

// Limits are what a process may take of the machine, with all that it starts. The zero value limits nothing. They are
// in force only in a cgroup, and only with the kernel's controllers for them; Status.Unlimited says where they are not.
type Limits struct {
	// MemoryMax is in bytes: what takes more is killed, and all of the process with it. 0: none.
	MemoryMax int64
	// MemoryHigh is in bytes: what takes more is slowed down, and what it can spare is taken back. 0: none.
	MemoryHigh int64
	// CPUWeight is the share of the processors relative to its neighbors' when processors are short, 1 to 10,000. 0:
	// what the niceness says, which is 100 at 0.
	CPUWeight int
}

// The least and the most that the kernel takes for a weight.
const leastWeight, mostWeight = 1, 10000

// setting is one file of a cgroup.
type setting struct {
	// controller is whose file it is; asked is what the limit is called, empty where nobody asked for it.
	controller, asked string
	file, value       string
}

// settings are the files to write for a process of that niceness. Once cgroups have weights, niceness counts only
// within one cgroup, so the weight has to express it too.
func (l Limits) settings(nice int) (out []setting) {
	if l.MemoryHigh > 0 {
		out = append(out, setting{"memory", "memory high", "memory.high", strconv.FormatInt(l.MemoryHigh, 10)})
	}
	// A component that has lost one of its processes is not what was started.
	whole := setting{"memory", "", "memory.oom.group", "1"}
	if l.MemoryMax > 0 {
		whole.asked = "memory max"
		out = append(out, setting{"memory", whole.asked, "memory.max", strconv.FormatInt(l.MemoryMax, 10)})
	}
	out = append(out, whole)
	if l.CPUWeight > 0 {
		return append(out, setting{"cpu", "CPU weight", "cpu.weight", strconv.Itoa(l.CPUWeight)})
	}
	return append(out, setting{"cpu", "", "cpu.weight.nice", strconv.Itoa(nice)})
}

// asked names the limits that are given.
func (l Limits) asked() (names []string) {
	for _, s := range l.settings(0) {
		if s.asked != "" {
			names = append(names, s.asked)
		}
	}
	return slices.Compact(names)
}

// limit puts the limits in force for an empty cgroup. It returns those that are not, with the reason; empty: all are.
func (g *cgroup) limit(l Limits, nice int) (unlimited string) {
	listed, err := os.ReadFile(filepath.Join(g.dir, "cgroup.controllers"))
	if err != nil {
		return without(l.asked(), err)
	}
	controllers := strings.Fields(string(listed))
	var names, failed []string
	for _, s := range l.settings(nice) {
		if slices.Contains(controllers, s.controller) {
			err = os.WriteFile(filepath.Join(g.dir, s.file), []byte(s.value), 0)
		} else {
			err = fmt.Errorf("the kernel's %s controller is not delegated to this unit", s.controller)
		}
		if err != nil && s.asked != "" && !slices.Contains(names, s.asked) {
			names = append(names, s.asked)
			failed = append(failed, without([]string{s.asked}, err))
		}
	}
	return strings.Join(failed, "; ")
}

// without says that limits are not in force; empty where there are none.
func without(names []string, err error) string {
	if len(names) == 0 {
		return ""
	}
	return fmt.Sprintf("%s not in force: %v", strings.Join(names, ", "), err)
}

// errNoCgroup is why a process group is not limited.
var errNoCgroup = errors.New("no cgroup is delegated to this unit")

func (l Limits) faults() []error {
	var errs []error
	if l.MemoryMax < 0 || l.MemoryHigh < 0 {
		errs = append(errs, fmt.Errorf("limits: memory max %d, high %d, neither may be negative", l.MemoryMax,
			l.MemoryHigh))
	}
	if l.CPUWeight != 0 && (l.CPUWeight < leastWeight || l.CPUWeight > mostWeight) {
		errs = append(errs, fmt.Errorf("limits: CPU weight %d, must be %d to %d, or 0", l.CPUWeight, leastWeight,
			mostWeight))
	}
	return errs
}
