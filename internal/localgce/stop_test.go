package localgce

import (
	"testing"
	"time"
)

func TestASpotVMHasLessTimeToStop(t *testing.T) {
	for _, c := range []struct{ given, standard, spot time.Duration }{
		{0, 120 * time.Second, 30 * time.Second}, {10 * time.Second, 10 * time.Second, 10 * time.Second},
	} {
		conf, err := Config{State: "/state", Agent: Agent{StopTimeout: c.given}}.withDefaults()
		if err != nil {
			t.Fatal(err)
		}
		p := &Project{conf: conf}
		standard, spot := p.stopTimeout(&vm{}), p.stopTimeout(&vm{record: record{Spot: true}})
		if standard != c.standard || spot != c.spot {
			t.Errorf("of %s: %s, a Spot VM %s", c.given, standard, spot)
		}
	}
}
