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
	try("policy routing (CONFIG_IP_MULTIPLE_TABLES)", IP(ctx, ns, "rule add fwmark 1 lookup 1001"))
	if _, err := exec.LookPath("nft"); err == nil {
		try("nft's bridge and ip families (modprobe nf_tables)", NFT(ctx, ns, filterTables))
		try("connection marks (modprobe nf_conntrack nft_ct nft_numgen)", NFT(ctx, ns, markTable))
	}
	return missing
}

// markTable is what a load balancer needs of the kernel.
const markTable = `table ip marks {
	chain in {
		type filter hook prerouting priority mangle; policy accept;
		ct mark 0 ct mark set numgen random mod 2 map { 0 : 1, 1 : 2 }
		meta mark set ct mark
	}
}
`
