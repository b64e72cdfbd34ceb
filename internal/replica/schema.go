package replica

import _ "embed"

// schema is made of the type and its comments by TestSchemaIsMadeOfTheType.
//
//go:embed cluster.schema.json
var schema string

// Schema is the JSON Schema (2020-12) of a whole Cluster document, for editors and linters. It refuses unknown fields
// and wrong types; what depends on more than one field only Validate knows.
func Schema() string { return schema }
