package main

import (
	"context"

	"usagebilling"
)

// read takes decimals as numbers.
func read(ctx context.Context, client *usagebilling.APIClient, eventRef, documentRef string) (*usagebilling.Event, *usagebilling.Document, error) {
	event, _, err := client.UsageAPI.GetEvent(ctx, eventRef).Execute()
	if err != nil {
		return nil, nil, err
	}
	document, _, err := client.DocumentsAPI.GetDocument(ctx, documentRef).Execute()
	return event, document, err
}
