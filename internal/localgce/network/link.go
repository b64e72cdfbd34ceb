package network

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"os/exec"
	"strings"
	"time"

	"github.com/quorate/quorate/internal/localgce/host"
)

// Link is how a VM's link behaves; the zero value is as fast as the machine.
type Link struct {
	// Bandwidth is what goes through in each direction, in bytes a second: 10 kB to 10 GB; 0 is no limit.
	Bandwidth int64
	// Delay is added in each direction, 1 ms to 10 s. It needs the kernel's netem, which not every kernel has.
	Delay time.Duration
}

// Validate says what is wrong with a Link.
func (l Link) Validate() error {
	if l.Bandwidth != 0 && (l.Bandwidth < 1e4 || l.Bandwidth > 1e10) {
		return fmt.Errorf("bandwidth %d: 10000 to 10000000000 bytes a second are allowed, or 0 for no limit",
			l.Bandwidth)
	}
	if l.Delay != 0 && (l.Delay < time.Millisecond || l.Delay > 10*time.Second) {
		return fmt.Errorf("delay %s: 1ms to 10s are allowed, or 0", l.Delay)
	}
	return nil
}

// Shape brings both ends of a VM's link from one state to another; where that fails, back.
func (f Fabric) Shape(ctx context.Context, v Port, to, from Link) error {
	if to == from {
		return nil
	}
	ends := [][2]string{{f.conf.Namespace, portName(v.Index)}, {v.Namespace, "eth0"}}
	var errs []error
	for _, end := range ends {
		errs = append(errs, tc(ctx, end[0], end[1], to))
	}
	err := errors.Join(errs...)
	if err != nil {
		for _, end := range ends {
			_ = tc(ctx, end[0], end[1], from) // it was so a moment ago
		}
	}
	return err
}

// tc sets the queueing of one end. A token bucket alone limits bandwidth; delay is netem's, which then limits too.
func tc(ctx context.Context, namespace, device string, l Link) error {
	args := []string{"-n", namespace, "qdisc", "replace", "dev", device, "root"}
	rate := fmt.Sprintf("%dbps", l.Bandwidth) // bytes a second, in tc's words
	switch {
	case l.Delay > 0:
		args = append(args, "netem", "limit", "100000", "delay", fmt.Sprintf("%dus", l.Delay.Microseconds()))
		if l.Bandwidth > 0 {
			args = append(args, "rate", rate)
		}
	case l.Bandwidth > 0:
		args = append(args, "tbf", "rate", rate, "burst", fmt.Sprint(max(l.Bandwidth/50, 64<<10)), "latency", "100ms")
	default:
		args = []string{"-n", namespace, "qdisc", "del", "dev", device, "root"}
	}
	_, err := host.Run(ctx, "tc", args...)
	switch {
	case err != nil && len(args) == 7: // there was none
		return nil
	case err != nil && l.Delay > 0 && strings.Contains(err.Error(), "qdisc kind is unknown"):
		return fmt.Errorf("delay needs netem, which this kernel lacks (modprobe sch_netem); bandwidth alone needs "+
			"none: %w", err)
	case errors.Is(err, exec.ErrNotFound):
		return fmt.Errorf("program tc is needed (apt-get install iproute2): %w", err)
	}
	return err
}

// ResetConnections breaks every TCP connection that a VM has to an address, and says how many they were.
func (f Fabric) ResetConnections(ctx context.Context, v Port, to netip.Addr) (int, error) {
	cmd := exec.CommandContext(ctx, "ss", "-H", "-K", "-t", "-n", "dst", to.String())
	var out, stderr strings.Builder
	cmd.Stdout, cmd.Stderr = &out, &stderr
	err := In(v.Namespace, cmd.Start)
	if err == nil {
		err = cmd.Wait()
	}
	if err != nil {
		return 0, fmt.Errorf("%s (%w)", host.FirstLine(stderr.String()), err)
	}
	return strings.Count(out.String(), "\n"), nil
}
