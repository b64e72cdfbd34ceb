package replica

import (
	"fmt"
	"regexp"
	"strconv"
	"time"
)

// agentUnit is the agent's own, which it must not restart.
const agentUnit = "quorate.service"

// serviceName is what systemd takes for the name of a service.
var serviceName = regexp.MustCompile(`^[A-Za-z0-9:_.\\@-]{1,247}\.service$`)

func (k Kubelet) validate(f *Faults) {
	for _, unit := range []struct{ field, name string }{{"kubelet.unit", k.Unit},
		{"kubelet.runtimeUnit", k.RuntimeUnit}} {
		if !serviceName.MatchString(unit.name) {
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
	if k.HealthPort < 1 || k.HealthPort > 65535 {
		f.add("kubelet.healthPort", strconv.Itoa(k.HealthPort), "1 to 65535")
	}
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
