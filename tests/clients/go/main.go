// Reads an event and a document with nothing but the client that was generated, and prints the event's quantity and the
// document's total as they came. Takes BASE_URL, TOKEN, EVENT_REF and DOCUMENT_REF from the environment.
package main

import (
	"context"
	"fmt"
	"log"
	"os"

	"usagebilling"
)

func main() {
	configuration := usagebilling.NewConfiguration()
	configuration.Servers = usagebilling.ServerConfigurations{{URL: os.Getenv("BASE_URL")}}
	ctx := context.WithValue(context.Background(), usagebilling.ContextAccessToken, os.Getenv("TOKEN"))
	event, document, err := read(ctx, usagebilling.NewAPIClient(configuration), os.Getenv("EVENT_REF"), os.Getenv("DOCUMENT_REF"))
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(event.GetQuantity(), document.GetTotal())
}
