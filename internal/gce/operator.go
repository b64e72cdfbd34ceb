package gce

// Operator is the Compute API as the operator's commands use it: besides what an agent asks and does, it lists what
// masters are made of, makes that and deletes it.
type Operator struct{ *Compute }

// NewOperator makes the client, as NewCompute does.
func NewOperator(cfg ComputeConfig) (*Operator, error) {
	c, err := NewCompute(cfg)
	return &Operator{c}, err
}
