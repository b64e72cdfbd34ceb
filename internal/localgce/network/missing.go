package network

import (
	"context"
	"fmt"
	"os/exec"

	"github.com/quorate/quorate/internal/localgce/host"
)

// Missing makes one of everything in a namespace of that name.
func Missing(ctx context.Context, ns string) []string {
	_ = Delete(ctx, ns)
	if _, err := host.Run(ctx, "ip", "netns", "add", ns); err != nil {
		return []string{fmt.Sprintf("network namespaces (in a container: --privileged): %v", err)}
	}
	defer func() { _ = Delete(context.WithoutCancel(ctx), ns) }()
	var missing []string
	try := func(what string, err error) {
		if err != nil {
			missing = append(missing, fmt.Sprintf("%s: %v", what, err))
		}
	}
	try("kernel module veth (modprobe veth)", IP(ctx, ns, "link add name x0 type veth peer name x1",
		"addr add 192.0.2.1/24 dev x0", "link set x0 up", "link set x1 up"))
	try("kernel module bridge (modprobe bridge)", IP(ctx, ns, "link add name br0 type bridge"))
	if len(missing) == 0 {
		try("resilient next-hop groups (Linux 5.13, iproute2 5.12 or newer)", IP(ctx, ns,
			"nexthop add id 1 via 192.0.2.2 dev x0", "nexthop add id 2 group 1 type resilient buckets 8 idle_timer 1"))
	}
	if _, err := exec.LookPath("nft"); err == nil {
		try("nft's bridge and ip families (modprobe nf_tables)", NFT(ctx, ns, filterTables))
	}
	return missing
}
