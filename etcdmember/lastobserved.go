package etcdmember

import (
	"time"

	"github.com/quorate/quorate/etcdmember/table"
)

// saw keeps a look, to be explained.
func (m *Membership) saw(f table.Facts, o table.Observation, plan table.Plan) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.told.At, m.told.Observation, m.told.Plan = f.Now, o, plan
}

// sawBeside keeps a look beside the leader; a zero time: this member does not lead.
func (m *Membership) sawBeside(at time.Time, previous, ring table.Ring, plan table.Plan) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.told.LeaderAt, m.told.Previous, m.told.Ring, m.told.LeaderPlan = at, previous, ring, plan
}

// MayStartAnyway says why a person's word start-anyway would change nothing by the last look; nil: the member would
// start.
func (m *Membership) MayStartAnyway() error {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.told.MayStartAnyway()
}
