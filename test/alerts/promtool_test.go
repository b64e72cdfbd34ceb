package alerts

import (
	"os"
	"strings"
	"testing"
)

// `make alerts` has promtool carry the file out; here it is only held to be whole.
func TestPromtoolTriesEachAlert(t *testing.T) {
	text, err := os.ReadFile("alerts.test.yaml")
	if err != nil {
		t.Fatal(err)
	}
	for name := range rules(t) {
		if n := strings.Count(string(text), "alertname: "+name+"\n"); n != 1 {
			t.Errorf("alert %s is wanted %d times in alerts.test.yaml, want once", name, n)
		}
		if !strings.Contains(string(text), "{alertname: "+name+", ") {
			t.Errorf("alerts.test.yaml does not say when alert %s is silent", name)
		}
	}
}
