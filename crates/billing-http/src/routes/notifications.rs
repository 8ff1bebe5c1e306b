//! Handlers for notifications.

use actix_web::HttpResponse;
use billing_application::error::ResourceKind;
use billing_application::notifications;
use billing_domain::notification::Notification;
use billing_domain::refs::NotificationRef;

use crate::call::{Call, Reply};
use billing_api::dto::notifications::NotificationJson;
use billing_api::query::notifications::NotificationParams;

pub(crate) async fn list_notifications(call: Call) -> Reply {
    let params: NotificationParams = call.query.read()?;
    let query = params.asked();
    let found: Vec<Notification> = call
        .look_up(move |cx| match &query {
            Some(query) => notifications::list_notifications(cx, query),
            None => Ok(Vec::new()),
        })
        .await?;
    Ok(HttpResponse::Ok().json(found.iter().map(NotificationJson::from).collect::<Vec<_>>()))
}

pub(crate) async fn get_notification(call: Call) -> Reply {
    let notification_ref = call.reference(NotificationRef::parse, ResourceKind::Notification)?;
    call.read::<NotificationJson, _>(move |cx| notifications::get_notification(cx, notification_ref)).await
}
