package replica

// DiskTypes are what gce.bootDisk.type and gce.dataDisk.type may be.
var DiskTypes = diskTypes

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
