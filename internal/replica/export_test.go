package replica

// Parse is Load of one document without defaults and validation.
func Parse(source string, data []byte) (*Cluster, error) {
	doc, c, err := parseDocument(source, data)
	if err == nil {
		err = c.faults.errOrNil()
	}
	if err != nil {
		return nil, asFaults(source, err)
	}
	return decode(doc)
}
