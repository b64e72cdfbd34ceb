package supervisor

import (
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"github.com/quorate/quorate/internal/pattern"
)

// validName is what may be the name of a cgroup, of a log file and of a journal identifier at once.
var validName = pattern.Of(`^[a-z0-9][a-z0-9._-]{0,62}$`)

// Validate names every fault of the Spec that can be seen without its supervisor. That the program exists is not asked:
// it may be put in place later, and until then each start fails with that cause.
func (spec Spec) Validate() error {
	var errs []error
	fault := func(format string, args ...any) { errs = append(errs, fmt.Errorf(format, args...)) }
	if !validName().MatchString(spec.Name) {
		fault("name: %q, must be 1 to 63 of a-z 0-9 . _ - and begin with a letter or digit", spec.Name)
	}
	if !filepath.IsAbs(spec.Path) {
		fault("path: %q, must be absolute", spec.Path)
	}
	if spec.StopTimeout < 0 {
		fault("stop timeout: %s, must not be negative", spec.StopTimeout)
	}
	if spec.OOMScore < 0 || spec.Nice < 0 {
		fault("oom score %d, nice %d: neither may be negative, since only root may go before its supervisor",
			spec.OOMScore, spec.Nice)
	}
	errs = append(errs, spec.Limits.faults()...)
	for _, kv := range spec.Env {
		if key, _, ok := strings.Cut(kv, "="); !ok || key == "" {
			fault("env: %q, must be KEY=VALUE", key)
		}
	}
	for _, probe := range []struct {
		name  string
		probe *Probe
	}{{"start", spec.Start}, {"live", spec.Live}, {"ready", spec.Ready}} {
		if probe.probe != nil {
			errs = append(errs, probe.probe.faults(probe.name)...)
		}
	}
	return errors.Join(errs...)
}

func (probe Probe) faults(name string) []error {
	var errs []error
	if probe.Check == nil {
		errs = append(errs, fmt.Errorf("%s probe: it has no check", name))
	}
	if probe.Period < 0 || probe.Timeout < 0 || probe.Retry < 0 || probe.Limit < 0 {
		errs = append(errs, fmt.Errorf("%s probe: period %s, timeout %s, retry %s, limit %s, none may be negative",
			name, probe.Period, probe.Timeout, probe.Retry, probe.Limit))
	}
	return errs
}

// validate adds what depends on the other processes: After names what was added before this process. So no circle can
// arise, in which nothing would start and the end would wait for ever, also when a stopped process comes back.
func (s *Supervisor) validate(spec Spec) error {
	errs := []error{spec.Validate()}
	s.mu.Lock()
	defer s.mu.Unlock()
	var before []string
	for _, p := range s.processes {
		if p.name == spec.Name {
			break
		}
		before = append(before, p.name)
	}
	for _, name := range spec.After {
		if !slices.Contains(before, name) {
			errs = append(errs, fmt.Errorf("after: %q: %w before this one", name, ErrUnknown))
		}
	}
	return errors.Join(errs...)
}

// clone makes the Spec independent of the caller's slices and probes.
func (spec Spec) clone() Spec {
	spec.Args, spec.Env, spec.After = slices.Clone(spec.Args), slices.Clone(spec.Env), slices.Clone(spec.After)
	for _, probe := range []**Probe{&spec.Start, &spec.Live, &spec.Ready} {
		if *probe != nil {
			own := **probe
			*probe = &own
		}
	}
	return spec
}
