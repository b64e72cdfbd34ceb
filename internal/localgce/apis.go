package localgce

import (
	"github.com/quorate/quorate/internal/localgce/buckets"
	"github.com/quorate/quorate/internal/localgce/compute"
	"github.com/quorate/quorate/internal/localgce/instance"
	"github.com/quorate/quorate/internal/localgce/settings"
)

// NewAPIs serves what instances returns, the buckets and the settings, without a project.
func NewAPIs(instances func() []instance.VM, b *buckets.Server, s *settings.Settings) *settings.APIs {
	return settings.NewAPIs(compute.New(compute.Config{Instances: instances, Zones: s.Zones, Settings: s}), b, s)
}
