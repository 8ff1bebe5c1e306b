package main

import (
	"context"

	"usagebilling"
)

const prefer = "numbers=string"

// read takes decimals as strings.
func read(ctx context.Context, client *usagebilling.APIClient, eventRef, documentRef string) (*usagebilling.Event, *usagebilling.Document, error) {
	event, _, err := client.UsageAPI.GetEvent(ctx, eventRef).Prefer(prefer).Execute()
	if err != nil {
		return nil, nil, err
	}
	document, _, err := client.DocumentsAPI.GetDocument(ctx, documentRef).Prefer(prefer).Execute()
	return event, document, err
}
