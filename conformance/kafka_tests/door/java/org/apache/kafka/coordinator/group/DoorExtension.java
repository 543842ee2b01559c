package org.apache.kafka.coordinator.group;

import org.junit.jupiter.api.extension.*;

/** A test counts only if the coordinator behind the door has answered, and nothing differed that the test did not look at. */
public final class DoorExtension implements BeforeEachCallback, AfterEachCallback, TestExecutionExceptionHandler {
    @Override public void beforeEach(ExtensionContext context) { Door.forget(); }

    @Override public void handleTestExecutionException(ExtensionContext context, Throwable thrown) throws Throwable {
        if (Door.differences().isEmpty()) throw thrown;
        throw new AssertionError(Door.differences(), thrown);
    }

    @Override public void afterEach(ExtensionContext context) {
        if (context.getExecutionException().isEmpty()) Door.verify();
    }
}
