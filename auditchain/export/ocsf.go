package export

import (
	"encoding/json"

	"github.com/agentd/agentd/auditchain"
)

// OCSF numbers (schema.ocsf.io, version 1.6.0).
const (
	ocsfVersion      = "1.6.0"
	ocsfCategory     = 6 // Application Activity
	ocsfLifecycle    = 6002
	ocsfAPIActivity  = 6003
	ocsfStart        = 3 // activities of Application Lifecycle
	ocsfStop         = 4
	ocsfOther        = 99
	ocsfInfo         = 1 // severities
	ocsfMedium       = 3
	ocsfStatusFailed = 2
)

type ocsfEvent struct {
	ActivityID   int             `json:"activity_id"`
	ActivityName string          `json:"activity_name"`
	CategoryUID  int             `json:"category_uid"`
	ClassUID     int             `json:"class_uid"`
	TypeUID      int             `json:"type_uid"`
	SeverityID   int             `json:"severity_id"`
	StatusID     int             `json:"status_id,omitempty"`
	Time         int64           `json:"time"`
	Metadata     ocsfMetadata    `json:"metadata"`
	App          *ocsfProduct    `json:"app,omitempty"`
	Actor        *ocsfActor      `json:"actor,omitempty"`
	API          *ocsfAPI        `json:"api,omitempty"`
	Source       *ocsfEndpoint   `json:"src_endpoint,omitempty"`
	Unmapped     json.RawMessage `json:"unmapped"`
}

type ocsfMetadata struct {
	Version        string      `json:"version"`
	Product        ocsfProduct `json:"product"`
	UID            string      `json:"uid"`
	LogName        string      `json:"log_name"`
	EventCode      string      `json:"event_code"`
	TenantUID      string      `json:"tenant_uid"`
	CorrelationUID string      `json:"correlation_uid,omitempty"`
	Sequence       int64       `json:"sequence"`
}

type ocsfProduct struct {
	Name       string `json:"name"`
	VendorName string `json:"vendor_name"`
}

type ocsfActor struct {
	AppName string       `json:"app_name"`
	Session *ocsfSession `json:"session,omitempty"`
}

type ocsfSession struct {
	UID string `json:"uid"`
}

type ocsfAPI struct {
	Operation string       `json:"operation"`
	Service   *ocsfService `json:"service,omitempty"`
}

type ocsfService struct {
	Name string `json:"name"`
}

type ocsfEndpoint struct {
	Name string `json:"name"`
}

// appendOCSF maps a record to API Activity, or to Application Lifecycle if it is
// about the agent itself. The unmodified record is under unmapped.
func appendOCSF(dst []byte, origin string, e *auditchain.Entry) ([]byte, error) {
	record, err := e.MarshalJSON()
	if err != nil {
		return dst, err
	}
	product := ocsfProduct{Name: "agentd", VendorName: "agentd"}
	event := ocsfEvent{
		ActivityID: ocsfOther, ActivityName: string(e.Kind), CategoryUID: ocsfCategory, ClassUID: ocsfAPIActivity,
		SeverityID: ocsfInfo, Time: e.Time.UnixMilli(), Unmapped: record,
		Metadata: ocsfMetadata{
			Version: ocsfVersion, Product: product, UID: uid(origin, e), LogName: origin, EventCode: string(e.Kind),
			TenantUID: e.Tenant, CorrelationUID: e.Correlation, Sequence: e.Seq,
		},
	}
	if severityOf(e.Kind) == medium {
		event.SeverityID, event.StatusID = ocsfMedium, ocsfStatusFailed
	}
	if e.Kind == auditchain.KindLifecycle {
		event.ClassUID, event.App = ocsfLifecycle, &product
		event.ActivityID = lifecycleActivity(e)
	} else {
		event.describeCall(origin, e)
	}
	event.TypeUID = event.ClassUID*100 + event.ActivityID
	return appendLine(dst, &event)
}

// describeCall fills the members that API Activity requires. A record does not
// state which end made the call, so its own agent is given as the source.
func (v *ocsfEvent) describeCall(origin string, e *auditchain.Entry) {
	v.Actor = &ocsfActor{AppName: origin}
	if e.Session != "" {
		v.Actor.Session = &ocsfSession{e.Session}
	}
	v.API = &ocsfAPI{Operation: e.Capability}
	if e.Capability == "" {
		v.API.Operation = string(e.Kind)
	}
	if e.Peer != "" {
		v.API.Service = &ocsfService{e.Peer}
	}
	v.Source = &ocsfEndpoint{origin}
}

// lifecycleActivity distinguishes starts and stops from other events.
func lifecycleActivity(e *auditchain.Entry) int {
	var body struct {
		Event string `json:"event"`
	}
	_ = json.Unmarshal(e.Body, &body) // an erased body has no event
	switch body.Event {
	case "start", "started":
		return ocsfStart
	case "stop", "stopped":
		return ocsfStop
	}
	return ocsfOther
}
