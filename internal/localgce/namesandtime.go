package localgce

import (
	"fmt"
	"net"

	"github.com/quorate/quorate/internal/localgce/instance"
	"github.com/quorate/quorate/internal/localgce/network"
	"github.com/quorate/quorate/internal/localgce/resolver"
)

// serveNamesAndTime opens what Google serves at the metadata server's address besides: DNS and NTP.
func (p *Project) serveNamesAndTime(v *vm, m *machine) error {
	err := network.In(p.names.VM(v.Slot), func() error {
		names, err := net.ListenPacket("udp4", instance.MetadataAddress+":53")
		if err != nil {
			return err
		}
		m.closers = append(m.closers, names)
		p.tasks.Go(func() { resolver.ServeNames(names) })
		streams, err := net.Listen("tcp4", instance.MetadataAddress+":53")
		if err != nil {
			return err
		}
		m.closers = append(m.closers, streams)
		p.tasks.Go(func() { resolver.ServeNameStreams(streams) })
		clock, err := net.ListenPacket("udp4", instance.MetadataAddress+":123")
		if err != nil {
			return err
		}
		m.closers = append(m.closers, clock)
		p.tasks.Go(func() { resolver.ServeTime(clock) })
		return nil
	})
	if err != nil {
		return fmt.Errorf("open the name and time server: %w", err)
	}
	return nil
}
