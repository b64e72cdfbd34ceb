// Package answer writes what Google's JSON APIs answer, errors too.
package answer

import (
	"encoding/json"
	"net/http"
	"strconv"
)

// JSON answers with a resource.
func JSON(w http.ResponseWriter, body any) {
	w.Header().Set("Content-Type", "application/json; charset=UTF-8")
	_ = json.NewEncoder(w).Encode(body) // the client has gone
}

// Error answers as Google's clients want it (googleapi.Error).
func Error(w http.ResponseWriter, code int, reason, message string) {
	w.Header().Set("Content-Type", "application/json; charset=UTF-8")
	w.WriteHeader(code)
	_ = json.NewEncoder(w).Encode(map[string]any{"error": map[string]any{
		"code": code, "message": message,
		"errors": []any{map[string]any{"message": message, "domain": "global", "reason": reason}},
	}})
}

// With is a resource with some fields in place of its own.
func With(r, others map[string]any) map[string]any {
	out := map[string]any{}
	for _, m := range []map[string]any{r, others} {
		for k, v := range m {
			out[k] = v
		}
	}
	return out
}

// Decimal is an id as JSON has it there.
func Decimal(id uint64) string { return strconv.FormatUint(id, 10) }
