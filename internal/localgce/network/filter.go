package network

import (
	"context"
	"net/netip"
	"strings"
)

// Cut brings the filter in line, all in one transaction of nft's: the silent ports, by index, and the pairs of
// addresses, from and to.
func (f Fabric) Cut(ctx context.Context, silent []int, pairs [][2]netip.Addr) error {
	var ports, ways []string
	for _, i := range silent {
		ports = append(ports, `"`+portName(i)+`"`)
	}
	for _, p := range pairs {
		ways = append(ways, p[0].String()+" . "+p[1].String())
	}
	return NFT(ctx, f.conf.Namespace, setScript("silent", ports)+setScript("pairs", ways))
}

// setScript renders a set of filterTables.
func setScript(set string, elements []string) string {
	script := "flush set bridge localgce " + set + "\n"
	if len(elements) > 0 {
		script += "add element bridge localgce " + set + " { " + strings.Join(elements, ", ") + " }\n"
	}
	return script
}
