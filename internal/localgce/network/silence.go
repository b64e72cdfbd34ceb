package network

import "context"

const silentNames = `table ip names {
	chain in {
		type filter hook input priority 0; policy accept;
		iifname "lo" udp dport 53 drop
		iifname "lo" tcp dport 53 drop
	}
}
`

// SilenceNames drops what a VM asks its name server, which has the metadata server's address on the VM's loopback, or
// lets it through. It is dropped where it arrives: a sender hears of what is dropped on its way out.
func (f Fabric) SilenceNames(ctx context.Context, v Port, silent bool) error {
	script := "add table ip names\ndelete table ip names\n"
	if silent {
		script += silentNames
	}
	return NFT(ctx, v.Namespace, script)
}
