package localgce

import (
	"bytes"
	"context"
	"fmt"
	"os/exec"
	"regexp"
	"strconv"
	"strings"
)

// Everything about links, addresses, routes and next hops is asked of the program ip: its Go equals know no resilient
// next-hop groups. Everything about packet filters is asked of nft.

// ipBatch runs ip's commands, a line each, in the named network namespace ("" is the host's). It stops at the first
// that fails and names it.
func ipBatch(ctx context.Context, namespace string, lines ...string) error {
	args := []string{"-batch", "-"}
	if namespace != "" {
		args = append([]string{"-n", namespace}, args...)
	}
	cmd := exec.CommandContext(ctx, "ip", args...)
	cmd.Stdin = strings.NewReader(strings.Join(lines, "\n") + "\n")
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	if err := cmd.Run(); err != nil {
		return fmt.Errorf("ip %s(network namespace %s): %s (%w)", failedLine(stderr.String(), lines), orHost(namespace),
			firstLine(stderr.String()), err)
	}
	return nil
}

var batchFailure = regexp.MustCompile(`Command failed -:(\d+)`)

func failedLine(stderr string, lines []string) string {
	if m := batchFailure.FindStringSubmatch(stderr); m != nil {
		if n, err := strconv.Atoi(m[1]); err == nil && n >= 1 && n <= len(lines) {
			return lines[n-1] + " "
		}
	}
	return ""
}

// nft runs a script of nft's in the named network namespace.
func nft(ctx context.Context, namespace, script string) error {
	cmd := exec.CommandContext(ctx, "nft", "-f", "-")
	cmd.Stdin = strings.NewReader(script)
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	err := inNamespace(namespace, cmd.Start)
	if err == nil {
		err = cmd.Wait()
	}
	if err != nil {
		return fmt.Errorf("nft %q (network namespace %s): %s (%w)", script, namespace, firstLine(stderr.String()), err)
	}
	return nil
}

// run runs a program and returns its output.
func run(ctx context.Context, program string, args ...string) ([]byte, error) {
	cmd := exec.CommandContext(ctx, program, args...)
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		return out, fmt.Errorf("%s %s: %s (%w)", program, strings.Join(args, " "), firstLine(stderr.String()), err)
	}
	return out, nil
}

func firstLine(s string) string {
	s, _, _ = strings.Cut(strings.TrimSpace(s), "\n")
	return s
}

func orHost(namespace string) string {
	if namespace == "" {
		return "of the host"
	}
	return namespace
}
