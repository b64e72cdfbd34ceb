package replica

import (
	"fmt"
	"strconv"
	"time"

	"github.com/quorate/quorate/internal/pattern"
)

// agentUnit is the agent's own, which it must not restart.
const agentUnit = "quorate.service"

// kubeletHealthPort is where a kubelet says how it is, unless its configuration names another port.
const kubeletHealthPort = 10248

// serviceName is what systemd takes for the name of a service.
var serviceName = pattern.Of(`^[A-Za-z0-9:_.\\@-]{1,247}\.service$`)

func (k Kubelet) validate(apiserverPort int, f *Faults) {
	for _, unit := range []struct{ field, name string }{{"kubelet.unit", k.Unit},
		{"kubelet.runtimeUnit", k.RuntimeUnit}} {
		if !serviceName().MatchString(unit.name) {
			f.add(unit.field, unit.name, "the name of a service of systemd, such as kubelet.service")
		} else if unit.name == agentUnit {
			f.add(unit.field, unit.name, "another service: this one is the agent's own")
		}
	}
	if k.Unit == k.RuntimeUnit {
		f.add("kubelet.runtimeUnit", k.RuntimeUnit, "another service than kubelet.unit")
	}
	if !cleanPath(k.RuntimeSocket) {
		f.add("kubelet.runtimeSocket", k.RuntimeSocket, pathRule)
	}
	k.validateHealthPort(apiserverPort, f)
	if k.Misses < 2 || k.Misses > 20 {
		f.add("kubelet.misses", strconv.Itoa(k.Misses), "2 to 20")
	}
	for _, limit := range []struct {
		field       string
		value       Duration
		least, most time.Duration
	}{
		{"kubelet.answerWithin", k.AnswerWithin, time.Second, time.Minute},
		{"kubelet.startWithin", k.StartWithin, time.Minute, time.Hour},
	} {
		if d := limit.value.Duration(); d < limit.least || d > limit.most {
			f.add(limit.field, limit.value.String(), fmt.Sprintf("%s to %s", Duration(limit.least),
				Duration(limit.most)))
		}
	}
}

func (k Kubelet) validateHealthPort(apiserverPort int, f *Faults) {
	const field = "kubelet.healthPort"
	owner, taken := takenPorts[k.HealthPort]
	switch port := strconv.Itoa(k.HealthPort); {
	case k.HealthPort < 1 || k.HealthPort > 65535:
		f.add(field, port, "1 to 65535")
	case k.HealthPort == kubeletHealthPort: // endpoint.port may not be this one
	case taken:
		f.add(field, port, "another port: "+owner+" has this one")
	case k.HealthPort == apiserverPort:
		f.add(field, port, "another port: the apiserver has this one (endpoint.port)")
	}
}
