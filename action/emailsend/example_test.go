package emailsend_test

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/agentd/agentd/action/emailsend"
	"github.com/agentd/agentd/internal/mailer"
)

func Example() {
	h, err := emailsend.New(emailsend.Config{Config: mailer.Config{
		Server: "mail.example.com", From: "Reports <reports@example.com>", Recipients: []string{"*@example.com"},
	}})
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, params := range []string{
		`{"to": "eve@evil.test", "subject": "Numbers", "body": "1, 2, 3"}`,
		`{"to": "ann@example.com", "subject": "Numbers\r\nBcc: eve@evil.test", "body": "1, 2, 3"}`,
	} {
		_, err = h.Execute(context.Background(), json.RawMessage(params))
		fmt.Println(err)
	}
	// Output:
	// the recipient "eve@evil.test" is not on this agent's list of recipients
	// the subject has line breaks or other control characters
}
