package org.apache.kafka.coordinator.group;

import net.bytebuddy.agent.ByteBuddyAgent;
import net.bytebuddy.agent.builder.AgentBuilder;
import net.bytebuddy.asm.Advice;
import net.bytebuddy.implementation.bytecode.assign.Assigner;
import org.junit.platform.launcher.*;

import java.lang.instrument.Instrumentation;

import static net.bytebuddy.matcher.ElementMatchers.named;

/** Before any test: managers that a Builder makes get a door, and random ids are recorded. */
public final class DoorListener implements LauncherSessionListener {
    @Override public void launcherSessionOpened(LauncherSession session) {
        DrawnIds.install();
        Instrumentation instrumentation = ByteBuddyAgent.install();
        for (String manager : new String[] {"GroupMetadataManager", "OffsetMetadataManager"}) {
            new AgentBuilder.Default()
                .type(named("org.apache.kafka.coordinator.group." + manager + "$Builder"))
                .transform((builder, type, loader, module, domain) -> builder.visit(Advice.to(Built.class).on(named("build"))))
                .installOn(instrumentation);
        }
    }

    /** Around Builder.build(): the door sees what the manager is built of, and stands before it. */
    public static final class Built {
        private Built() { }

        @Advice.OnMethodEnter public static Object enter(@Advice.This Object builder) { return Door.before(builder); }

        @Advice.OnMethodExit public static void exit(
            @Advice.Enter Object door,
            @Advice.Return(readOnly = false, typing = Assigner.Typing.DYNAMIC) Object manager
        ) {
            manager = Door.around(door, manager);
        }
    }
}
