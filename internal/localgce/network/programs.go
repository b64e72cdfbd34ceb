package network

import (
	"bytes"
	"context"
	"fmt"
	"os/exec"
	"regexp"
	"strconv"
	"strings"

	"github.com/quorate/quorate/internal/localgce/host"
)

// Everything about links, addresses and routes is asked of the program ip, everything about packet filters of nft: what
// they are given can be pasted by a person who looks for a fault.

// IP runs ip's commands, a line each, in the named network namespace ("" is the host's). It stops at the first
// that fails and names it.
func IP(ctx context.Context, namespace string, lines ...string) error {
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
			host.FirstLine(stderr.String()), err)
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

// NFT runs a script of nft's in the named network namespace.
func NFT(ctx context.Context, namespace, script string) error {
	cmd := exec.CommandContext(ctx, "nft", "-f", "-")
	cmd.Stdin = strings.NewReader(script)
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	err := In(namespace, cmd.Start)
	if err == nil {
		err = cmd.Wait()
	}
	if err != nil {
		return fmt.Errorf("nft %q (network namespace %s): %s (%w)", script, namespace, host.FirstLine(stderr.String()), err)
	}
	return nil
}

func orHost(namespace string) string {
	if namespace == "" {
		return "of the host"
	}
	return namespace
}
