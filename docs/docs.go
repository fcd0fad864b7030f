// Package docs holds the documents that the program hands out itself.
package docs

import _ "embed" // of OpenAPI

// OpenAPI is the description of the HTTP API.
//
//go:embed openapi.yaml
var OpenAPI []byte
